"""Files: tables, traces and releases, read into arrays and written from them."""
