"""Where values become bytes and bytes become values; and what may be shown of them."""
