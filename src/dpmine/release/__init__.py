"""Tables that anyone may mine, bought once: `DiffGen` and `ContingencyTable` as published, `TreeRelease` is ours."""
