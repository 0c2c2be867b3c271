"""Which k and l can be afforded: a search over promises, and the setting that it proposes."""
