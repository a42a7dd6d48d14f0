"""What leaves a workspace: reports, reproduction packs, exchange formats."""
