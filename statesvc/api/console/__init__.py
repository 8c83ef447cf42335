"""The page `/console`: what an operator looks at first. It asks the API like everybody else, with the key that is typed into it."""
