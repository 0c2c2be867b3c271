"""Words that mean the same in any column: for no value, true and false."""

_NO_ANSWER = (
    "missing|unknown|not available|not applicable|not stated|not specified|not known|no data|"
    "no answer|unbekannt|keine angabe|k. a.|k.a.|inconnu|inconnue|non renseign\u00e9|desconocido|"
    "desconocida|sin datos|sconosciuto|desconhecido|onbekend|"
    "\u043d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u043d\u043e|\u672a\u77e5|\u4e0d\u8be6|"
    "not recorded|not provided|not reported|unspecified|undetermined|no value|prefer not to say|"
    "don't know|unk|no information|ohne angabe|nicht bekannt|nicht angegeben|keine daten|"
    "\u043d\u0435\u0442 \u0434\u0430\u043d\u043d\u044b\u0445|"
    "\u043d\u0435 \u0443\u043a\u0430\u0437\u0430\u043d\u043e|"
    "\u043d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u0435\u043d|ok\u00e4nd|ok\u00e4nt|ukjent|"
    "ukendt|tuntematon|ei tietoa|brak danych|nieznany|nieznana|nie podano|bilinmiyor|"
    "belirtilmemi\u015f|\u4e0d\u660e|\u672a\u56de\u7b54|\u65e0\u6570\u636e|"
    "\ud574\ub2f9\uc5c6\uc74c|\ud574\ub2f9 \uc5c6\uc74c|\ubaa8\ub984|\ubbf8\uc0c1|"
    "\u063a\u064a\u0631 \u0645\u0639\u0631\u0648\u0641|"
    "\u063a\u064a\u0631 \u0645\u062a\u0648\u0641\u0631|\u05dc\u05d0 \u05d9\u05d3\u05d5\u05e2|"
    "\u03ac\u03b3\u03bd\u03c9\u03c3\u03c4\u03bf|\u03ac\u03b3\u03bd\u03c9\u03c3\u03c4\u03bf\u03c2|"
    "nezn\u00e1m\u00e9|nezn\u00e1m\u00fd|ismeretlen|sin dato|no consta|no disponible|"
    "n\u00e3o informado|non noto|non disponibile|niet bekend|niet van toepassing|necunoscut|"
    "none given|none stated|none specified|none provided|not given|not asked|not answered|"
    "not collected|not entered|not assigned|not disclosed|not determined|undisclosed|unanswered|"
    "unavailable|no response|no reply|no entry|"
    "to be determined|tbd|tba|nicht erfasst|nicht erhoben|nicht verf\u00fcgbar|unbestimmt|"
    "keine antwort|n/d|s/d|k/a|non pr\u00e9cis\u00e9|non communiqu\u00e9|non sp\u00e9cifi\u00e9|"
    "non disponible|sans r\u00e9ponse|ind\u00e9termin\u00e9|no informado|"
    "no especificado|ns/nc|sin informaci\u00f3n|sin especificar|sin respuesta|"
    "n\u00e3o dispon\u00edvel|n\u00e3o aplic\u00e1vel|n\u00e3o especificado|"
    "sem informa\u00e7\u00e3o|non specificato|non applicabile|nessuna risposta|geen antwoord|"
    "geen gegevens|niet ingevuld|niet beschikbaar|niet opgegeven|n.v.t.|nvt|ej angivet|"
    "ej till\u00e4mpligt|uppgift saknas|ikke oplyst|ikke oppgitt|uoplyst|ikke angitt|"
    "ei vastausta|ei tiedossa|nie dotyczy|b/d|neuvedeno|nezji\u0161t\u011bno|nincs adat|"
    "bilgi yok|veri yok|\u043d/\u0434|\u043d\u0435\u0442 \u043e\u0442\u0432\u0435\u0442\u0430|"
    "\u043d\u0435 \u043e\u043f\u0440\u0435\u0434\u0435\u043b\u0435\u043d\u043e|"
    "\u043d\u0435 \u0438\u0437\u0432\u0435\u0441\u0442\u043d\u043e|\u7121\u56de\u7b54|"
    "\u672a\u56de\u7b54|\u672a\u8a18\u5165|\u30c7\u30fc\u30bf\u306a\u3057|\u672a\u63d0\u4f9b|"
    "\u672a\u586b\u5199|\u4e0d\u9002\u7528|\u4e0d\u8be6|\ubb34\uc751\ub2f5"
)
_OF_PROGRAMS = (
    "NA|N/A|n/a|na|#N/A|#N/A N/A|#NA|<NA>|NaN|nan|NAN|-nan|-NaN|<NaN>|"
    "null|NULL|Null|(null)|(NULL)|<null>|<NULL>|[NULL]|None|undefined|\\N|NaT|.|..|-|--|---|"
    "\u2013|\u2014|n.a.|N.A.|n. a.|#NV|#NULL!|#VALUE!|#REF!|#DIV/0!|#NAME?|#NUM!|(blank)|1.#IND|"
    "-1.#IND|1.#QNAN|-1.#QNAN|0000-00-00|0000-00-00 00:00:00|inf|-inf|Infinity|-Infinity|+inf|"
    "+Infinity|INF|+INF|-INF|#N/V|#N/D|#N/D!|#N/B|#I/T|#N/DISP|#YOK|#\u041d/\u0414|"
    "#HI\u00c1NYZIK|#NEN\u00cd_K_DISPOZICI|??|???"
)
NO_VALUE = (
    *dict.fromkeys(
        form
        for word in _NO_ANSWER.split("|")
        for form in (word, word.capitalize(), word.title(), word.upper())
    ),
    *_OF_PROGRAMS.split("|"),
)
"""Words for a missing value: of people, pandas, R, SQL, spreadsheets, Stata, SAS, JavaScript and
Python; a dash; and infinities. Not `none`: it may say that somebody has no illness."""
ERROR = "^#[\u00a1\u00bf]?[^\\W\\d]+(/0)?[!?]$|^(Err|Erreur|Fehler) ?:5\\d\\d$"
"""Errors of spreadsheets in any language, in capitals: no value, either."""
_TRUE = (
    "1|ja|on|oui|si|sim|s\u00ed|t|true|verdadero|vrai|wahr|y|yes|\u0434\u0430|\u662f|1.0|.t.|tak|"
    "kyll\u00e4|tosi|ano|\u00e1no|evet|do\u011fru|s\u00ec|vero|verdadeiro|"
    "\u0438\u0441\u0442\u0438\u043d\u0430|\u306f\u3044|\uc608|\ub124|\u0646\u0639\u0645|"
    "\u05db\u05df|\u03bd\u03b1\u03b9|igen|prawda|sant|jah|taip"
)
_FALSE = (
    "0|f|falsch|false|falso|faux|n|nao|nein|no|non|n\u00e3o|off|\u043d\u0435\u0442|\u5426|0.0|"
    ".f.|nie|ei|ep\u00e4tosi|ne|hay\u0131r|hayir|yanl\u0131\u015f|\u043b\u043e\u0436\u044c|"
    "\u3044\u3044\u3048|\uc544\ub2c8\uc694|\uc544\ub2c8\uc624|\u0644\u0627|\u05dc\u05d0|"
    "\u03cc\u03c7\u03b9|nem|fa\u0142sz|nej|falskt"
)
TRUE, FALSE = frozenset(_TRUE.split("|")), frozenset(_FALSE.split("|"))
TRUTH = TRUE | FALSE
"""Words for true and false, folded."""
_UNITS = {
    "usd": "$ us$ dollar dollars",
    "eur": "\u20ac euro euros",
    "gbp": "\u00a3",
    "jpy": "\u00a5 yen",
    "inr": "\u20b9 rs",
    "rub": "\u20bd",
    "krw": "\u20a9",
    "try": "\u20ba",
    "%": "pct percent prozent procent",
    "year": "y yr yrs years jahr jahre ans a\u00f1os anni \u043b\u0435\u0442 \u5c81 \u6b73",
    "month": "mo mos mth mths months monat monate mois meses mesi",
    "week": "wk wks weeks woche wochen semaines",
    "day": "d days tag tage jours d\u00edas giorni",
    "h": "hr hrs hour hours std stunden",
    "min": "mins minute minutes minuten",
    "s": "sec secs second seconds sek sekunden",
    "g": "gram grams gramme grammes gramm",
    "kg": "kgs kilo kilos kilogram kilograms kilogramm",
    "mg": "milligram milligrams",
    "m": "meter meters metre metres",
    "cm": "centimeter centimeters centimetre centimetres",
    "km": "kilometer kilometers kilometre kilometres",
    "l": "liter liters litre litres",
    "ml": "milliliter milliliters millilitre millilitres",
    "km/h": "kmh kph",
    "mi": "mile miles",
    "mph": "mi/h",
    "lb": "lbs pound pounds",
    "ft": "foot feet",
    "in": "inch inches",
    "\u00b0c": "c celsius \u00b0celsius degc",
    "\u00b0f": "f fahrenheit \u00b0fahrenheit degf",
}
SAME_UNIT = {word: unit for unit, words in _UNITS.items() for word in words.split()}
"""Units, folded, that are written in another way, too."""
TIMES = {"k": 3, "tsd": 3, "m": 6, "mn": 6, "mio": 6, "mil": 6, "million": 6, "millions": 6} | {
    "b": 9, "bn": 9, "mrd": 9, "billion": 9, "billions": 9
}  # fmt: skip
"""Powers of ten of an amount of money, folded: `$1.5M`. Of anything else `m` is no million."""
CURRENCIES = "USD|EUR|GBP|JPY|CHF|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|BRL|TRY|RUB|KRW"
