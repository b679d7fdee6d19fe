"""One request, whatever protocol brought it. Its face: `Translator.accept(request) -> Job`."""
