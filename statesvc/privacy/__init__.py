"""Privacy: erasure of a shipment, its replay after a restore, and the rotation of the master
key.
"""
