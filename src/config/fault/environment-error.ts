/** The environment of this process does not work; the message says what to change. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}
