// Errors that the author can mend.

/** A mistake in the plugin, or a missing tool. The message says what to do. */
export class BuildError extends Error {}
