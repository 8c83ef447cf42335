"""The role `sealer`: gives committed entries their place in the one Merkle tree, and signs
and publishes its heads.
"""
