"""The add-on demo under its name of 0.1.0, which `statesvc_client.testing` of that release
imports; goes after 0.3.
"""

from importlib import import_module

__path__ = import_module("statesvc.addons.demo").__path__
