/** The test files that need a POSIX system, PostgreSQL or a program that only Linux has. */
export const notOnWindows: readonly string[] = [];
