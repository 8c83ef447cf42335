"""What spans cells: asked of all of them, answered as one. It stores nothing, and checks no key: the cells do."""
