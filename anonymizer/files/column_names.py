"""What the name of a column says of its cells: whose they are, or what is known of people.

In twelve languages, as people write the names of columns: `firstName`, `Tel. Nr.`, `apellidos`.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import combining, normalize


class NameSays(NamedTuple):
    """What a name says; of an identifier also what it holds, in the plural."""

    role: Literal["identifier", "quasi-identifier", "sensitive", "amount"]
    kind: str = ""


def said_by(name: str) -> NameSays | None:
    """Return what a name says; None: nothing that is known.

    Words are compared whatever their case, accents and what joins them, in scripts without blanks
    any part of the name. Beside an identifier may stand whose it is, and a number: `customer_email`
    holds some, `email_count` does not; `name` is a person's, `station_name` is not.
    """
    words, folded = _words(name), "".join(_words(name))
    phrases = {
        (i, j): " ".join(words[i:j])
        for i in range(len(words))
        for j in range(i + 1, len(words) + 1)
    }
    for kind, known in _IDENTIFIERS.items():
        if _holds(known, words, phrases) or folded in known or _is_part(known, folded):
            return NameSays("identifier", kind)
    if _holds(_NAMES, words, phrases) or folded in _NAMES:
        return NameSays("identifier", "names of people")
    if _holds(_NUMBERS, words, phrases) and _PEOPLE & {*phrases.values()}:
        return NameSays("identifier", "ids of people")
    for role, known in _OTHERS.items():
        if {*phrases.values(), folded} & known or _is_part(known, folded):
            return NameSays(role)
    # A station or a company has a name, too, that looks like somebody's.
    return NameSays("quasi-identifier") if {*words[-1:]} & _NAMES else None


def _holds(
    known: frozenset[str], words: tuple[str, ...], phrases: dict[tuple[int, int], str]
) -> bool:
    """Return whether a name is one of the known phrases and whose it is."""
    return any(
        phrase in known and all(map(_is_beside, (*words[:i], *words[j:])))
        for (i, j), phrase in phrases.items()
    )


def _is_beside(word: str) -> bool:
    return word.isdigit() or word in _PEOPLE or word in _NUMBERS or word in _BESIDE


def _is_part(known: frozenset[str], folded: str) -> bool:
    return any(word in folded for word in known if word[0] >= _WITHOUT_BLANKS)


@lru_cache(1 << 12)
def _words(name: str) -> tuple[str, ...]:
    """Return the words of a name, folded and without accents."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    signs = normalize("NFKD", apart.replace("\u0142", "l"))
    bare = "".join(sign for sign in signs if not combining(sign)).casefold()
    return tuple(re.findall(r"[^\W\d_]+|\d+", bare))


def _set(words: str) -> frozenset[str]:
    return frozenset(" ".join(_words(word)) for word in words.split("|"))


_WITHOUT_BLANKS = "\u1100"
"""Letters from here on, of Chinese, Japanese and Korean, are not set apart into words."""
_BESIDE = _set(
    "the|of|de|du|des|la|le|el|home|work|private|business|primary|secondary|contact|personal"
    "|main|alternate|his|her|my|your|full|legal|new|old|der|die|das|et|and"
)
_PEOPLE = _set(
    "driver|customer|client|patient|person|people|employee|owner|user|student|pupil|"
    "passenger|contact|subscriber|member|holder|cardholder|teacher|doctor|physician|tenant|"
    "visitor|guest|applicant|respondent|participant|rider|insured|child|mother|father|"
    "spouse|kunde|kunden|fahrer|halter|patienten|mitarbeiter|mieter|schuler|gast|"
    "versicherten|abonne|salarie|proprietaire|conducteur|cliente|paciente|empleado|"
    "conductor|propietario|usuario|alumno|paziente|dipendente|utente|motorista|funcionario|"
    "klant|bestuurder|medewerker|pracownik|pacjent|kund|vehicle|car|truck|device|phone|sim|"
    "household|citizen|voter|account|login"
)
_NUMBERS = _set(
    "id|ids|no|nr|num|number|nummer|numero|code|key|ref|uid|pk|identifier|kennung|"
    "identifiant|identificador|identificativo|\u7f16\u53f7|\u043d\u043e\u043c\u0435\u0440"
)
_NAMES = _set(
    "name|names|nom|nombre|nome|naam|namn|navn|nimi|ad soyad|\u0438\u043c\u044f|"
    "\u0627\u0633\u0645|\u0928\u093e\u092e"
)
_IDENTIFIERS = {
    "names of people": _set(
        "first name|given name|forename|last name|surname|family name|middle name|maiden name|"
        "full name|vorname|nachname|familienname|geburtsname|prenom|nom de famille|nom complet|"
        "apellido|apellidos|primer apellido|segundo apellido|nombre completo|cognome|sobrenome|"
        "voornaam|achternaam|fornamn|efternamn|fornavn|etternavn|imie|nazwisko|soyad|soyadi|"
        "prijmeni|\u59d3\u540d|\u540d\u5b57|\u6c0f\u540d|\u540d\u524d|\uc774\ub984|"
        "\u0444\u0430\u043c\u0438\u043b\u0438\u044f|"
        "\u043e\u0442\u0447\u0435\u0441\u0442\u0432\u043e|\u0444\u0438\u043e"
    ),
    "e-mail addresses": _set(
        "email|e mail|mail|emails|email address|correo|courriel|mel|e posta|\u90ae\u7bb1|"
        "\u90ae\u4ef6|\u30e1\u30fc\u30eb|\u043f\u043e\u0447\u0442\u0430"
    ),
    "phone numbers": _set(
        "phone|phone number|telephone|tel|telno|mobile|mobile number|mobile phone|cell|"
        "cell phone|cellphone|handy|handynummer|telefon|telefonnummer|mobilnummer|telefono|"
        "celular|movil|cellulare|telefone|telemovel|telefoon|fax|msisdn|\u7535\u8bdd|"
        "\u624b\u673a|\u96fb\u8a71|\u643a\u5e2f|\uc804\ud654|"
        "\u0442\u0435\u043b\u0435\u0444\u043e\u043d|\u0442\u0435\u043b\u0435\u0444\u043e\u043d\u0430|\u0647\u0627\u062a\u0641"
    ),
    "addresses": _set(
        "address|addr|street address|home address|postal address|residence|adresse|"
        "anschrift|wohnadresse|direccion|domicilio|indirizzo|endereco|morada|adres|adress|"
        "wohnort strasse|\u5730\u5740|\u4f4f\u5740|\u4f4f\u6240|\uc8fc\uc18c|"
        "\u0430\u0434\u0440\u0435\u0441"
    ),
    "national ids": _set(
        "ssn|social security|social security number|nino|national id|"
        "national insurance number|nationalid|id card|identity card|identity number|"
        "passport|passport number|passport no|driver license|drivers license|"
        "driving licence|driving license|license number|licence number|tax id|tin|"
        "nhs number|medicare|aadhaar|reisepass|personalausweis|ausweisnummer|ausweis|"
        "fuhrerschein|steuer id|steuernummer|sozialversicherungsnummer|versichertennummer|"
        "svnr|ahv|passeport|numero de securite sociale|nir|pasaporte|dni|nif|nie|cedula|"
        "curp|nss|permiso de conducir|passaporto|codice fiscale|cpf|rg|paszport|pesel|"
        "personnummer|fodselsnummer|hetu|bsn|paspoort|tc kimlik|\u8eab\u4efd\u8bc1|"
        "\u62a4\u7167|\u793e\u4fdd\u53f7|\u30d1\u30b9\u30dd\u30fc\u30c8|"
        "\u30de\u30a4\u30ca\u30f3\u30d0\u30fc|\u043f\u0430\u0441\u043f\u043e\u0440\u0442|\u043f\u0430\u0441\u043f\u043e\u0440\u0442\u0430|"
        "\u0438\u043d\u043d|\u0441\u043d\u0438\u043b\u0441"
    ),
    "names or numbers of accounts": _set(
        "iban|account number|account no|account id|bank account|acct|acct no|card number|"
        "card no|credit card|credit card number|debit card|pan|policy number|policy no|"
        "contract number|kontonummer|konto|kreditkarte|kartennummer|kundennummer|"
        "vertragsnummer|numero de compte|numero de cuenta|tarjeta|numero di conto|user name|"
        "username|userid|user|login|screen name|nickname|handle|benutzername|nutzername|"
        "identifiant|usuario|utente|\u8d26\u53f7|\u8d26\u6237|\u94f6\u884c\u5361|"
        "\u7528\u6237\u540d|\u0430\u043a\u043a\u0430\u0443\u043d\u0442|"
        "\u043b\u043e\u0433\u0438\u043d"
    ),
    "licence plates or numbers of vehicles": _set(
        "licence plate|license plate|plate|plates|number plate|plate number|plate no|"
        "registration plate|reg no|kennzeichen|nummernschild|amtliches kennzeichen|plaque|"
        "plaque d immatriculation|immatriculation|matricula|placa|targa|kenteken|tablica|"
        "plaka|vin|vehicle identification number|fahrgestellnummer|chassis|chassis number|"
        "bastidor|telaio|\u8f66\u724c|\u8f66\u724c\u53f7|\u8f66\u67b6\u53f7|"
        "\u30ca\u30f3\u30d0\u30fc\u30d7\u30ec\u30fc\u30c8|"
        "\u0433\u043e\u0441\u043d\u043e\u043c\u0435\u0440"
    ),
    "ids of devices": _set(
        "imei|imsi|iccid|mac|mac address|ip|ip address|ip addr|ipv4|ipv6|device id|uuid|"
        "guid|serial|serial number|serial no|seriennummer|numero de serie|advertising id|"
        "idfa|gaid|cookie|cookie id|\u8bbe\u5907\u53f7"
    ),
    "ids of people": _set(
        "id|mrn|medical record number|chart number|hospital number|patientennummer|"
        "personalnummer|mitarbeiternummer|matrikelnummer|fallnummer|matricule|legajo|"
        "\u5b66\u53f7|\u5de5\u53f7|\u75c5\u5386\u53f7|"
        "\u0442\u0430\u0431\u0435\u043b\u044c\u043d\u044b\u0439 \u043d\u043e\u043c\u0435\u0440"
    ),
}
_OTHERS: dict[Literal["quasi-identifier", "sensitive", "amount"], frozenset[str]] = {
    "quasi-identifier": _set(
        "age|alter|edad|eta|idade|leeftijd|\u5e74\u9f84|"
        "\u0432\u043e\u0437\u0440\u0430\u0441\u0442|sex|gender|geschlecht|sexe|sexo|sesso|"
        "geslacht|\u6027\u522b|\u043f\u043e\u043b|zip|zip code|zipcode|postcode|postal code|"
        "post code|plz|postleitzahl|code postal|codigo postal|cep|\u90ae\u7f16|"
        "\u90f5\u4fbf\u756a\u53f7|\u0438\u043d\u0434\u0435\u043a\u0441|dob|date of birth|"
        "birth date|birthdate|birthday|birth year|year of birth|born|geburtsdatum|geburtstag|"
        "geburtsjahr|date de naissance|fecha de nacimiento|data di nascita|data de nascimento|"
        "geboortedatum|\u51fa\u751f\u65e5\u671f|\u751f\u5e74\u6708\u65e5|"
        "\u0434\u0430\u0442\u0430 \u0440\u043e\u0436\u0434\u0435\u043d\u0438\u044f|city|town|"
        "stadt|ort|wohnort|ville|ciudad|citta|cidade|\u57ce\u5e02|"
        "\u0433\u043e\u0440\u043e\u0434|job|occupation|profession|beruf|metier|ocupacion|"
        "professione|\u804c\u4e1a|\u043f\u0440\u043e\u0444\u0435\u0441\u0441\u0438\u044f|"
        "nationality|country|race|ethnicity|education|marital status"
    ),
    "sensitive": _set(
        "salary|income|wage|wages|pay|earnings|compensation|bonus|gehalt|lohn|einkommen|"
        "verdienst|salaire|revenu|revenus|sueldo|salario|ingreso|ingresos|stipendio|reddito|"
        "renda|rendimento|loon|inkomen|lon|wynagrodzenie|maas|\u5de5\u8d44|\u85aa\u6c34|"
        "\u85aa\u8d44|\u6536\u5165|\u5e74\u53ce|\u7d66\u6599|"
        "\u0437\u0430\u0440\u043f\u043b\u0430\u0442\u0430|\u0434\u043e\u0445\u043e\u0434|"
        "diagnosis|diagnoses|disease|illness|disorder|icd|icd10|symptom|symptoms|medication|"
        "drug|treatment|therapy|hiv|blood group|blood type|pregnant|disability|mental health|"
        "diagnose|krankheit|erkrankung|medikament|behandlung|behinderung|maladie|diagnostic|"
        "traitement|enfermedad|diagnostico|malattia|diagnosi|doenca|ziekte|aandoening|choroba|"
        "\u75be\u75c5|\u8bca\u65ad|\u75c5\u540d|\u8a3a\u65ad|"
        "\u0434\u0438\u0430\u0433\u043d\u043e\u0437|\u0431\u043e\u043b\u0435\u0437\u043d\u044c|"
        "religion|faith|konfession|religione|religiao|\u5b97\u6559|party|political party|partei|"
        "sexual orientation|orientation|sexuality|crime|conviction|offence|offense|"
        "criminal record|straftat|debt|credit score|balance|schulden|kontostand|deuda|grade|gpa|"
        "note moyenne"
    ),
    "amount": _set(
        "amount|price|cost|total|sum|value|weight|height|distance|mileage|km|duration|seconds|"
        "revenue|turnover|quantity|count|score|area|speed|temperature|betrag|preis|kosten|"
        "gewicht|strecke|dauer|umsatz|wert|flache|montant|prix|poids|importe|precio|peso|"
        "importo|prezzo|preco|valor|bedrag|prijs|\u91d1\u989d|\u4ef7\u683c|\u91cd\u91cf|"
        "\u0441\u0443\u043c\u043c\u0430|\u0446\u0435\u043d\u0430"
    ),
}
