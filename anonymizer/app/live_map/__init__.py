"""What the live map shows: frames, rates, and what an analyst can know."""
