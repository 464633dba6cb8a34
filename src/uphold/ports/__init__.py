"""What the engine needs from the world: small Protocols, nothing that runs."""
