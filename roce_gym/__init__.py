"""A Gymnasium environment for tuning shared RoCEv2 fabrics, on a packet-level simulator."""

from importlib.metadata import PackageNotFoundError, version

from roce_gym.registration import register_environments

try:
    __version__ = version("roce-gym")
except PackageNotFoundError:  # a checkout that was not installed
    __version__ = "0+unknown"

register_environments()
