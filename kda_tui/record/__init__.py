"""The workspace on disk: contract, launch plans, ledgers, the live reader and verification."""
