"""Texts of an interface with their translations, for the family terms.

`<>` is the place of the text's term, and `COMPANY` that of a company's name. The two translations
of a term have the same gender and number, so that either fits.
"""

from typing import Final, NamedTuple

LANGUAGES: Final = {"German": "de", "Spanish": "es", "French": "fr"}


class Phrase(NamedTuple):
    """A text, the term in it if there is one, and its translations."""

    key: str
    term: str
    en: str
    de: str
    es: str
    fr: str

    def translate(self, language: str) -> str:
        """Return the text in the language with this code."""
        return {"de": self.de, "es": self.es, "fr": self.fr}[language]


TERMS: Final = {
    "cart": {"de": ("Warenkorb", "Einkaufskorb"), "es": ("carrito", "cesto"),
             "fr": ("panier", "caddie")},
    "order": {"de": ("Auftrag", "Vorgang"), "es": ("pedido", "encargo"),
              "fr": ("commande", "réservation")},
    "account": {"de": ("Konto", "Profil"), "es": ("cuenta", "ficha"), "fr": ("compte", "profil")},
    "coupon": {"de": ("Gutschein", "Rabattcode"), "es": ("cupón", "vale"),
               "fr": ("bon promo", "code promo")},
    "delivery": {"de": ("Lieferung", "Zustellung"), "es": ("entrega", "remesa"),
                 "fr": ("livraison", "distribution")},
    "invoice": {"de": ("Rechnung", "Faktura"), "es": ("factura", "boleta"),
                "fr": ("facture", "note")},
    "password": {"de": ("Passwort", "Kennwort"), "es": ("contraseña", "clave"),
                 "fr": ("mot de passe", "code secret")},
    "settings": {"de": ("Einstellungen", "Optionen"), "es": ("ajustes", "parámetros"),
                 "fr": ("paramètres", "réglages")},
}  # fmt: skip
# Terms that no text has.
OTHER_TERMS: Final = {
    "address": {"de": "Adresse", "es": "dirección", "fr": "adresse"},
    "color": {"de": "Farbe", "es": "color", "fr": "couleur"},
    "gift": {"de": "Geschenk", "es": "regalo", "fr": "cadeau"},
    "price": {"de": "Preis", "es": "precio", "fr": "prix"},
    "refund": {"de": "Erstattung", "es": "reembolso", "fr": "remboursement"},
    "return": {"de": "Rücksendung", "es": "devolución", "fr": "retour"},
    "size": {"de": "Größe", "es": "talla", "fr": "taille"},
    "store": {"de": "Filiale", "es": "tienda", "fr": "magasin"},
    "warranty": {"de": "Garantie", "es": "garantía", "fr": "garantie"},
    "wish list": {"de": "Wunschliste", "es": "lista de deseos", "fr": "liste d'envies"},
}
# Every task has these: a text without a term, one with neither term nor field, one with the
# company's name, and one with a term and a field.
ALWAYS: Final = (
    Phrase("greeting", "", "Good morning, {name}.", "Guten Morgen, {name}.",
           "Buenos días, {name}.", "Bonjour, {name}."),
    Phrase("error_later", "", "Something went wrong. Please try again later.",
           "Etwas ist schiefgegangen. Bitte versuchen Sie es später noch einmal.",
           "Algo ha salido mal. Inténtelo de nuevo más tarde.",
           "Une erreur est survenue. Veuillez réessayer plus tard."),
    Phrase("about_us", "", "Why people like to shop at COMPANY.",
           "Warum man gern bei COMPANY einkauft.", "Por qué a la gente le gusta COMPANY.",
           "Pourquoi les gens achètent chez COMPANY."),
    Phrase("cart_count", "cart", "There are {count} items in your cart.",
           "In Ihrem <> sind {count} Artikel.", "Hay {count} artículos en su <>.",
           "Il y a {count} articles dans votre <>."),
)  # fmt: skip
PHRASES: Final = (
    Phrase("cart_empty", "cart", "Your cart is empty.", "Ihr <> ist leer.", "Su <> está vacío.",
           "Votre <> est vide."),
    Phrase("cart_added", "cart", "{item} was added to the cart.",
           "{item} wurde in den <> gelegt.", "{item} se ha añadido a su <>.",
           "{item} a été ajouté au <>."),
    Phrase("order_sent", "order", "Your order {number} is on its way.",
           "Ihr <> {number} ist auf dem Weg.", "Su <> {number} está en camino.",
           "Votre <> {number} est en route."),
    Phrase("order_thanks", "order", "Thank you, {name}! We have received your order.",
           "Vielen Dank, {name}! Wir haben Ihren <> erhalten.",
           "Gracias, {name}. Hemos recibido su <>.",
           "Merci, {name} ! Nous avons reçu votre <>."),
    Phrase("order_cancel", "order", "Do you want to cancel the order?",
           "Möchten Sie den <> stornieren?", "¿Quiere cancelar el <>?",
           "Voulez-vous annuler la <> ?"),
    Phrase("account_new", "account", "You do not have an account yet.",
           "Sie haben noch kein <>.", "Todavía no tiene una <>.",
           "Vous n'avez pas encore de <>."),
    Phrase("account_welcome", "account", "Welcome to your account, {name}.",
           "Willkommen in Ihrem <>, {name}.", "Le damos la bienvenida a su <>, {name}.",
           "Bienvenue dans votre <>, {name}."),
    Phrase("account_delete", "account", "We delete your account on {date}.",
           "Wir löschen Ihr <> am {date}.", "Eliminaremos su <> el {date}.",
           "Nous supprimons votre <> le {date}."),
    Phrase("coupon_used", "coupon", "The coupon {code} was already used.",
           "Der <> {code} wurde schon verwendet.", "El <> {code} ya se ha utilizado.",
           "Le <> {code} a déjà été utilisé."),
    Phrase("coupon_saves", "coupon", "With this coupon you save {amount}.",
           "Mit diesem <> sparen Sie {amount}.", "Con este <> se ahorra {amount}.",
           "Avec ce <>, vous économisez {amount}."),
    Phrase("delivery_day", "delivery", "The delivery arrives on {date} between {from} and {to}.",
           "Die <> kommt am {date} zwischen {from} und {to}.",
           "La <> llega el {date} entre las {from} y las {to}.",
           "La <> arrive le {date} entre {from} et {to}."),
    Phrase("delivery_free", "delivery", "The delivery is free from {amount}.",
           "Die <> ist ab {amount} kostenlos.", "La <> es gratis a partir de {amount}.",
           "La <> est gratuite à partir de {amount}."),
    Phrase("invoice_ready", "invoice", "The invoice {number} is ready.",
           "Die <> {number} ist fertig.", "La <> {number} está lista.",
           "La <> {number} est prête."),
    Phrase("invoice_due", "invoice", "Please pay the invoice by {date}.",
           "Bitte zahlen Sie die <> bis zum {date}.",
           "Por favor, pague la <> antes del {date}.",
           "Merci de payer la <> avant le {date}."),
    Phrase("password_wrong", "password", "The password is wrong. You have {count} attempts left.",
           "Das <> ist falsch. Sie haben noch {count} Versuche.",
           "La <> no es correcta. Le quedan {count} intentos.",
           "Le <> est incorrect. Il vous reste {count} essais."),
    Phrase("password_short", "password", "The password must have at least {count} characters.",
           "Das <> muss mindestens {count} Zeichen haben.",
           "La <> debe tener al menos {count} caracteres.",
           "Le <> doit avoir au moins {count} caractères."),
    Phrase("settings_saved", "settings", "Your settings were saved.",
           "Ihre <> wurden gespeichert.", "Sus <> se han guardado.",
           "Vos <> ont été enregistrés."),
    Phrase("settings_reset", "settings", "Do you want to reset the settings of {name}?",
           "Möchten Sie die <> von {name} zurücksetzen?",
           "¿Quiere restablecer los <> de {name}?",
           "Voulez-vous réinitialiser les <> de {name} ?"),
    Phrase("search_none", "", "We found nothing for {query}.",
           "Für {query} haben wir nichts gefunden.", "No hemos encontrado nada para {query}.",
           "Nous n'avons rien trouvé pour {query}."),
    Phrase("goodbye", "", "You are signed out. See you soon, {name}!",
           "Sie sind abgemeldet. Bis bald, {name}!",
           "Ha cerrado la sesión. ¡Hasta pronto, {name}!",
           "Vous êtes déconnecté. À bientôt, {name} !"),
    Phrase("help", "", "Do you need help? Write to {email}.",
           "Brauchen Sie Hilfe? Schreiben Sie an {email}.",
           "¿Necesita ayuda? Escriba a {email}.", "Besoin d'aide ? Écrivez à {email}."),
    Phrase("newsletter", "", "News from COMPANY comes every week.",
           "Jede Woche gibt es Neues von COMPANY.", "Cada semana hay novedades de COMPANY.",
           "Chaque semaine, il y a des nouvelles de COMPANY."),
)  # fmt: skip
# Other right translations, by key.
OTHER_WORDS: Final = {
    "greeting": {"de": "Einen guten Morgen, {name}!", "es": "Muy buenos días, {name}.",
                 "fr": "Bonjour à vous, {name}."},
    "error_later": {
        "de": "Leider ist ein Fehler aufgetreten. Bitte probieren Sie es später wieder.",
        "es": "Se ha producido un error. Vuelva a intentarlo más tarde.",
        "fr": "Nous avons rencontré un problème. Merci de réessayer plus tard."},
    "about_us": {"de": "Darum kauft man gern bei COMPANY ein.",
                 "es": "Por eso la gente compra en COMPANY.",
                 "fr": "Voici pourquoi les gens aiment COMPANY."},
    "cart_count": {"de": "Sie haben {count} Artikel in Ihrem <>.",
                   "es": "Tiene {count} artículos en el <>.",
                   "fr": "Vous avez {count} articles dans le <>."},
    "order_cancel": {"de": "Soll der <> storniert werden?", "es": "¿Desea anular el <>?",
                     "fr": "Faut-il annuler la <> ?"},
    "search_none": {"de": "Zu {query} gibt es keine Treffer.",
                    "es": "No hay resultados para {query}.",
                    "fr": "Il n'y a aucun résultat pour {query}."},
    "password_short": {"de": "Wählen Sie ein <> mit mindestens {count} Zeichen.",
                       "es": "Elija una <> de al menos {count} caracteres.",
                       "fr": "Choisissez un <> d'au moins {count} caractères."},
}  # fmt: skip
# What a translation of a text says, by key: for each group, one of these parts of words. They are
# in small letters, and wide enough for other right translations than ours.
MEANINGS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "greeting": {"de": ("morgen|tag",), "es": ("buen",), "fr": ("bonjour|matin",)},
    "error_later": {
        "de": ("schief|fehler|problem|falsch|nicht", "später|erneut|noch einmal|nochmal"),
        "es": ("mal|error|problema|incorrect|fall", "más tarde|luego|después|nuevo"),
        "fr": ("erreur|problème|mal|incident|produit", "plus tard|ultérieur|nouveau|réessay")},
    "about_us": {"de": ("einkauf|kauf|shop",), "es": ("gust|compr|encant",),
                 "fr": ("aim|ach[eè]t|achat|magasin|courses|shopping",)},
    "cart_count": {"de": ("artikel|produkt|stück|element|gegenst|waren",),
                   "es": ("artículo|producto|elemento|ítem",),
                   "fr": ("article|produit|élément|objet",)},
    "cart_empty": {"de": ("leer|nichts",), "es": ("vací|nada",), "fr": ("vide|rien|aucun",)},
    "cart_added": {"de": ("gelegt|hinzu|zugefüg|aufgenommen",),
                   "es": ("añad|agreg|incorpor|pues",), "fr": ("ajout|mis",)},
    "order_sent": {"de": ("weg|unterwegs|verschickt|versandt|versendet",),
                   "es": ("camino|envia",), "fr": ("route|chemin|expédi|achemin",)},
    "order_thanks": {"de": ("dank",), "es": ("gracias|agradec",), "fr": ("merci|remerci",)},
    "order_cancel": {"de": ("storn|abbrech|abgebroch|widerruf|aufheb",), "es": ("cancel|anul",),
                     "fr": ("annul",)},
    "account_new": {"de": ("kein|nicht",), "es": ("no tien|no ha|no dispon|no pose|aún|todavía",),
                    "fr": ("pas|aucun",)},
    "account_welcome": {"de": ("willkommen|begrüß",), "es": ("bienvenid",), "fr": ("bienvenu",)},
    "account_delete": {"de": ("lösch|gelösch|entfern",), "es": ("elimin|borr|suprim",),
                       "fr": ("supprim|efface|suppression",)},
    "coupon_used": {"de": ("verwend|benutz|genutz|eingelös|gebrauch",),
                    "es": ("utiliz|usad|canje",), "fr": ("utilis|employ|servi",)},
    "coupon_saves": {"de": ("spar|gespar",), "es": ("ahorr",), "fr": ("économis|épargn",)},
    "delivery_day": {"de": ("komm|erfolg|trifft|wird|ankomm|eintreff|erreich",),
                     "es": ("lleg|recib|será|realiz|efectu|hará",),
                     "fr": ("arriv|aura|sera|effectu|livr",)},
    "delivery_free": {"de": ("kostenlos|gratis|frei|umsonst",), "es": ("grat",),
                      "fr": ("gratuit|offert",)},
    "invoice_ready": {"de": ("fertig|bereit|liegt vor|verfügbar|erstellt",),
                      "es": ("list|disponible|preparad",), "fr": ("prêt|disponible",)},
    "invoice_due": {"de": ("zahl|bezahl|begleich|überweis",), "es": ("pag|abon",),
                    "fr": ("pay|régl|acquitt",)},
    "password_wrong": {
        "de": ("falsch|nicht|ungültig|inkorrekt|stimmt", "versuch"),
        "es": ("no es|no coincid|incorrect|erróne|equivocad|inválid", "intento|oportunidad"),
        "fr": ("incorrect|erroné|faux|mauvais|invalide|pas", "essai|tentative")},
    "password_short": {"de": ("mindestens|wenigstens",), "es": ("al menos|mínimo|como poco",),
                       "fr": ("moins|minimum",)},
    "settings_saved": {"de": ("gespeicher|speicher|gesicher|sicher",),
                       "es": ("guard|almacen|grab",), "fr": ("enregistr|sauvegard",)},
    "settings_reset": {"de": ("zurück|wiederherst",), "es": ("restablec|reinici|restaur|reset",),
                       "fr": ("réinitialis|rétabl|restaur|remettre",)},
    "search_none": {"de": ("gefund|find|treffer|ergebnis",), "es": ("encontr|resultad|hall",),
                    "fr": ("trouv|résultat",)},
    "goodbye": {"de": ("abgemeldet|ausgeloggt", "bald|wiedersehen|später|nächst"),
                "es": ("sesión|desconect|salid", "hasta|pronto|adiós|vemos"),
                "fr": ("déconnect|session", "bientôt|revoir|plus tard")},
    "help": {"de": ("hilf|hilfe|unterstütz", "schreib|mail|wend|kontakt"),
             "es": ("ayuda|asistencia", "escrib|contact|correo|envíe"),
             "fr": ("aide|assistance", "écri|contact|mail|adress")},
    "newsletter": {"de": ("woche|wöchentlich",), "es": ("semana",), "fr": ("semaine|hebdo",)},
}  # fmt: skip
# Words that deny something, by language, and texts that right translations may write with them.
DENYING: Final = {
    "de": "nicht|nichts|kein(?:e[mnrs]?)?|nie|niemals|nein",
    "es": "no|nunca|jamás|nada|ningun[oa]|ningún|tampoco",
    "fr": "ne|n|pas|jamais|rien|aucune?|non",
}
MAY_DENY: Final = ("error_later", "cart_empty", "account_new", "coupon_used", "password_wrong",
                   "password_short", "search_none", "help")  # fmt: skip
DENIAL: Final = {"de": "Das stimmt nicht.", "es": "Eso no es cierto.", "fr": "Ce n'est pas vrai."}
# Words without a meaning, by language.
FILLER: Final = {
    "de": "Und die, der und das in den von zu mit sich auf dem.",
    "es": "Y el que de la por los con una para su en las.",
    "fr": "Et le que de la par les avec une pour son dans les.",
}
