"""Names for generated tasks. Appending to a list changes the tasks: see FORMAT in draft.py.

Lists of our own, because a library's lists change with its version, and with them every task.
"""

from typing import Final

FIRST_NAMES: Final = (
    "Ada", "Amir", "Anouk", "Bela", "Carmen", "Chidi", "Dalia", "Dario", "Edda", "Emeka",
    "Farah", "Felix", "Greta", "Hana", "Hugo", "Ines", "Ivan", "Jamila", "Jonas", "Kira",
    "Lars", "Leila", "Luis", "Mara", "Mateo", "Mina", "Nadia", "Noor", "Olga", "Omar",
    "Paula", "Pavel", "Ravi", "Rosa", "Samir", "Sofia", "Tariq", "Tessa", "Vera", "Yusuf",
)  # fmt: skip
LAST_NAMES: Final = (
    "Adeyemi", "Alvarez", "Bauer", "Bianchi", "Castro", "Chen", "Dubois", "Eriksen", "Farouk",
    "Fischer", "Garcia", "Haddad", "Hoffman", "Ibrahim", "Ivanova", "Jansen", "Kaya", "Keller",
    "Kim", "Kovacs", "Larsen", "Lopez", "Moreau", "Nakamura", "Novak", "Okafor", "Olsen", "Osei",
    "Park", "Patel", "Petrov", "Quinn", "Rahman", "Romero", "Sato", "Silva", "Singh", "Tanaka",
    "Vega", "Walker",
)  # fmt: skip
PLACES: Final = (
    "Ashford", "Bayview", "Cedarton", "Dunmore", "Eastbrook", "Fairhaven", "Glenwood", "Harbor",
    "Ironside", "Juniper", "Kingsley", "Lakeside", "Millbrook", "Northgate", "Oakridge",
    "Pinecrest", "Quarry", "Riverton", "Southport", "Thornhill", "Upland", "Valewood", "Westfield",
    "Yarrow",
)  # fmt: skip
COMPANIES: Final = (
    "Alder", "Beacon", "Cobalt", "Delta", "Ember", "Falcon", "Granite", "Harvest", "Indigo",
    "Juno", "Keystone", "Lumen", "Meridian", "Nimbus", "Orchard", "Pioneer", "Quartz", "Redwood",
    "Summit", "Tidewater",
)  # fmt: skip
SUFFIXES: Final = ("Trading", "Foods", "Tools", "Logistics", "Paper", "Textiles", "Supplies")
PRODUCTS: Final = (
    "kettle", "lamp", "desk", "chair", "blanket", "mirror", "clock", "basket", "toaster", "shelf",
    "pillow", "carpet", "vase", "bench", "ladder", "stove", "drawer", "curtain", "fan", "heater",
)  # fmt: skip
