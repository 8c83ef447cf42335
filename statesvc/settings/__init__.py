"""The settings: a model of the environment, and settings of single carriers."""
