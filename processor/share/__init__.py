"""Share groups (KIP-932) as an experimental source of records."""
