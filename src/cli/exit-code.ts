/** The exit codes of every command (those from 64 on: sysexits(3)). */
export const exitCode = {
  /** Done, and the answer is yes: `verify` found the key enabled, `status --check` a ready daemon. */
  done: 0,
  /** Refused by the daemon, failed, or the answer is no. */
  failed: 1,
  /** The command line is not understood. */
  usage: 2,
  /** No daemon of the state directory answers. */
  unreachable: 69,
  /** The storage of the daemon failed, which ended `serve` (daemon/serve.ts). */
  storageFailed: 74,
  /** The configuration has faults. */
  configuration: 78,
} as const;

/** What `--json` calls a failure for which the daemon has no code. */
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
