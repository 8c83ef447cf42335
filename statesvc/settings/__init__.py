"""The settings: one model of the environment, and what it says of single carriers."""
