"""Does. asyncio; sees only the core, the ports and the wire."""
