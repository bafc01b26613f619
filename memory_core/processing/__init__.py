"""What turns a revision into stored events: chunks, proposals, proofs, one account of each
occurrence, one transaction."""
