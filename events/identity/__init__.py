"""Identity: the ids of shipments and events, by the recipe of their carrier, and how texts are
compared for them. Pure and final.
"""
