"""Words that mean the same in any column: for no value, true and false, and totals."""

_NO_ANSWER = (
    *("missing", "unknown", "not available", "not applicable", "not stated", "not specified"),
    *("not known", "no data", "no answer", "unbekannt", "keine angabe", "k. a.", "k.a."),
    *("inconnu", "inconnue", "non renseign\u00e9", "desconocido", "desconocida", "sin datos"),
    *(
        "sconosciuto",
        "desconhecido",
        "onbekend",
        "\u043d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u043d\u043e",
    ),
    *("\u672a\u77e5", "\u4e0d\u8be6"),
)
NO_VALUE = (
    *(
        form
        for word in _NO_ANSWER
        for form in (word, word.capitalize(), word.title(), word.upper())
    ),
    *("keine Angabe", "k. A.", "k.A."),
    *("NA", "N/A", "n/a", "na", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-nan"),
    *("-NaN", "<NaN>", "null", "NULL", "Null", "(null)", "(NULL)", "<null>", "<NULL>", "[NULL]"),
    *("None", "undefined", "\\N", "NaT", ".", "..", "-", "--", "---", "\u2013", "\u2014"),
    *("n.a.", "N.A.", "n. a.", "#NV", "#NULL!", "#VALUE!", "#REF!", "#DIV/0!", "#NAME?", "#NUM!"),
    *("(blank)", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "0000-00-00", "0000-00-00 00:00:00"),
    *("inf", "-inf", "Infinity", "-Infinity"),
)
"""Words for a missing value: of people, pandas, R, SQL, spreadsheets, Stata, SAS, JavaScript and
Python; a dash; and infinities. Not `none`: it may say that somebody has no illness."""
TOTALS = (
    *("total", "totals", "grand total", "subtotal", "sum", "summe", "gesamt", "insgesamt"),
    *(
        "gesamtsumme",
        "zwischensumme",
        "somme",
        "ensemble",
        "suma",
        "totale",
        "totaal",
        "\u5408\u8ba1",
    ),
    *("\u603b\u8ba1", "\u0438\u0442\u043e\u0433\u043e"),
)
"""Words that begin a line of totals, folded."""
TRUE = frozenset(
    {
        *("true", "t", "yes", "y", "1", "on", "wahr", "ja", "vrai", "oui", "verdadero"),
        *("si", "sí", "sim", "\u662f", "\u0434\u0430"),
    }
)
FALSE = frozenset(
    {
        *("false", "f", "no", "n", "0", "off", "falsch", "nein", "faux", "non", "falso"),
        *("não", "nao", "\u5426", "\u043d\u0435\u0442"),
    }
)
TRUTH = TRUE | FALSE
"""Words for true and false, folded."""
