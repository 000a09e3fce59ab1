/** The environment of this process is not as it must be; the message says what to change. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}
