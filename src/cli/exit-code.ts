/** The exit codes of every command. The codes from 64 on are those of sysexits(3). */
export const exitCode = {
  /** The command succeeded, and its result is positive: `verify` found an enabled key. */
  done: 0,
  /** The daemon refused, the command failed, or the result is negative. */
  failed: 1,
  usage: 2,
  /** No daemon answers for the state directory. */
  unreachable: 69,
  /** `serve` ended because its storage failed (daemon/serve.ts). */
  storageFailed: 74,
  configuration: 78,
} as const;

/** The `code` of a failure with `--json`, if the daemon gave none. */
export function errorCodeOf(code: number): string {
  switch (code) {
    case exitCode.usage:
      return 'usage';
    case exitCode.unreachable:
      return 'daemon_unreachable';
    case exitCode.configuration:
      return 'configuration_invalid';
    default:
      return 'failed';
  }
}
