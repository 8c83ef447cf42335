"""The carriers that may push to us: a module and a line here for each, and those of packages."""

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Final, cast

from events.carriers.carrier import Carrier
from events.carriers.installed import add_installed
from events.identity.recipes import RECIPES

MODULES: Final = (
    "aftership",
    "amazon",
    "aramex",
    "asendia",
    "australiapost",
    "austrianpost",
    "bluedart",
    "bpost",
    "bring",
    "cainiao",
    "canadapost",
    "canonical",
    "canpar",
    "cdek",
    "chronopost",
    "clickpost",
    "correios",
    "correos",
    "dcsa",
    "delhivery",
    "dhl_ecommerce",
    "dhl_express",
    "dhl_parcel_de",
    "dhl_parcel_nl",
    "dhl_poland",
    "dhl_unified",
    "dicom",
    "doordash",
    "dpd",
    "dtdc",
    "easypost",
    "easyship",
    "epcis",
    "evri",
    "fedex",
    "fourpx",
    "geodis",
    "ghn",
    "ghtk",
    "gls",
    "hermes",
    "ics_courier",
    "inpost",
    "jtexpress",
    "karrio",
    "kdniao",
    "kuaidi100",
    "lalamove",
    "landmark",
    "laposte",
    "mercado_envios",
    "morneau",
    "nationex",
    "ninjavan",
    "novaposhta",
    "nzpost",
    "omniva",
    "ontrac",
    "packeta",
    "parcelone",
    "parcelsapp",
    "pitney_bowes",
    "poste_italiane",
    "posti",
    "postnl",
    "postnord",
    "purolator",
    "roadie",
    "royalmail",
    "seko",
    "sendcloud",
    "sendle",
    "seventeentrack",
    "sf_express",
    "ship24",
    "shipengine",
    "shiplogic",
    "shippo",
    "shiprocket",
    "smartkargo",
    "spring",
    "teleship",
    "thailand_post",
    "tnt",
    "trackingmore",
    "uber_direct",
    "ups",
    "usps",
    "veho",
    "viettelpost",
    "x12_214",
    "yanwen",
)
# Modules that do not bear the id of their carrier, which is no name of Python's.
_MODULE_OF: Final = {"17track": "seventeentrack"}
# Versions of normalizers by carrier, of those that have others than 1.
_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {}


class CarrierTable(MutableMapping[str, Carrier]):
    """Carriers by id, each imported on first use; listing or testing ids imports none."""

    def __init__(self, carrier_ids: Iterable[str]) -> None:
        self._carriers: dict[str, Carrier | None] = dict.fromkeys(carrier_ids)

    def __getitem__(self, carrier_id: str) -> Carrier:
        carrier = self._carriers[carrier_id]
        if carrier is None:
            module = import_module(f"{__package__}.{_MODULE_OF.get(carrier_id, carrier_id)}")
            carrier = self._carriers[carrier_id] = cast("Carrier", module.CARRIER)
        return carrier

    def versions(self, carrier_id: str) -> Collection[str]:
        """Return the versions of its normalizer, without an import of ours."""
        carrier = self._carriers[carrier_id]
        return _VERSIONS.get(carrier_id, ("1",)) if carrier is None else carrier.normalizers

    def __setitem__(self, carrier_id: str, carrier: Carrier) -> None:
        self._carriers[carrier_id] = carrier

    def __delitem__(self, carrier_id: str) -> None:
        del self._carriers[carrier_id]

    def __contains__(self, carrier_id: object) -> bool:
        return carrier_id in self._carriers

    def __iter__(self) -> Iterator[str]:
        return iter(self._carriers)

    def __len__(self) -> int:
        return len(self._carriers)


_ID_OF: Final = {module: carrier_id for carrier_id, module in _MODULE_OF.items()}
CARRIERS: Final = CarrierTable(_ID_OF.get(name, name) for name in MODULES)
# The entry points of other packages, and which package each is of.
INSTALLED: Final = add_installed(CARRIERS, RECIPES)
