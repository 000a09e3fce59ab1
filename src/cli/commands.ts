import { command, type CommandEntry, group } from './command.ts';
import { sellerCommands } from './seller-commands.ts';

/**
 * Every command of the program, in the order of its help.
 *
 * Those in `commands/` are answered by the running daemon; those in `local/` work without one.
 */
export const commands: readonly CommandEntry[] = [
  command(
    'init',
    'Ask what is needed, check the store, write a configuration',
    async () => (await import('./local/init.ts')).initCommand,
  ),
  command('serve', 'Run the daemon', async () => (await import('./local/serve.ts')).serveCommand),
  command(
    'demo',
    'Show the main scenario end to end, in a few seconds',
    async () => (await import('./local/demo.ts')).demoCommand,
  ),
  command(
    'sandbox',
    'Run a temporary authority to try things out',
    async () => (await import('./local/sandbox.ts')).sandboxCommand,
  ),
  command(
    'status',
    'Show the state of the daemon',
    async () => (await import('./commands/status/status.ts')).statusCommand,
  ),
  command(
    'verify <key..>',
    'Ask whether a license key is valid',
    async () => (await import('./commands/license.ts')).verifyCommand,
  ),
  command(
    'use <key..>',
    'Record one use of a license key',
    async () => (await import('./commands/license.ts')).useCommand,
  ),
  command(
    'unuse <key..>',
    'Take one use of a license key back',
    async () => (await import('./commands/license.ts')).unuseCommand,
  ),
  command(
    'enable <key..>',
    'Enable a license key',
    async () => (await import('./commands/license.ts')).enableCommand,
  ),
  command(
    'disable <key..>',
    'Disable a license key',
    async () => (await import('./commands/license.ts')).disableCommand,
  ),
  ...sellerCommands,
  group('token', 'Issue, list and revoke tokens', [
    command(
      'issue',
      'Issue a token for a piece of software',
      async () => (await import('./commands/token.ts')).issueToken,
    ),
    command(
      'list',
      'List tokens, but not their secret values',
      async () => (await import('./commands/token.ts')).listTokens,
    ),
    command(
      'revoke <token>',
      'Revoke a token: it stops at once',
      async () => (await import('./commands/token.ts')).revokeToken,
    ),
  ]),
  group('audit', 'See who did what', [
    command(
      'list',
      'List recorded acts, the latest first',
      async () => (await import('./commands/audit.ts')).listAudit,
    ),
    command('show <id>', 'Show one recorded act', async () => (await import('./commands/audit.ts')).showAct),
  ]),
  group('outbox', 'See the changes for the upstream, and decide on them', [
    command(
      'list',
      'List the changes that are not finished',
      async () => (await import('./commands/outbox.ts')).listOutbox,
    ),
    command('show <id>', 'Show a change', async () => (await import('./commands/outbox.ts')).showOperation),
    command(
      'retry <id>',
      'Send a change again that is dead, conflicted or uncertain',
      async () => (await import('./commands/outbox.ts')).retryOperation,
    ),
    command(
      'drop <id>',
      'Give up a change: it is not sent any more',
      async () => (await import('./commands/outbox.ts')).dropOperation,
    ),
    command(
      'confirm <id>',
      'Say that a change was applied at the upstream',
      async () => (await import('./commands/outbox.ts')).confirmOperation,
    ),
  ]),
  group('sync', 'Hurry, pause and resume sending to the upstream', [
    command(
      'now',
      'Send waiting changes at once, ignoring backoff and breaker',
      async () => (await import('./commands/sync.ts')).syncNow,
    ),
    command(
      'pause',
      'Stop sending, even across restarts',
      async () => (await import('./commands/sync.ts')).pauseSync,
    ),
    command(
      'resume',
      'Resume sending, and retry refused credentials',
      async () => (await import('./commands/sync.ts')).resumeSync,
    ),
  ]),
  command(
    'preload <file>',
    'Fetch license keys in advance, to answer for them offline',
    async () => (await import('./commands/preload.ts')).preloadCommand,
  ),
  command(
    'backup <file>',
    'Copy the state of the running daemon into a new file',
    async () => (await import('./commands/backup.ts')).backupCommand,
  ),
  command(
    'restore <file>',
    'Restore a backup, while no daemon runs',
    async () => (await import('./local/restore.ts')).restoreCommand,
  ),
  group('store', 'Move an authority to a database', [
    command(
      'move',
      'Copy an authority from its state directory to PostgreSQL, while no daemon runs',
      async () => (await import('./local/store.ts')).moveStoreCommand,
    ),
  ]),
  group('state', 'See what the state directory holds', [
    command(
      'show',
      'Show what would be lost with it; needs no daemon',
      async () => (await import('./local/state.ts')).showState,
    ),
  ]),
  command(
    'doctor',
    'Find what is wrong, and say what to do',
    async () => (await import('./local/doctor.ts')).doctorCommand,
  ),
  command(
    'explain [code]',
    'Say what an error code, a state or an exit code means',
    async () => (await import('./local/explain.ts')).explainCommand,
  ),
  group('service', 'Run the daemon under systemd', [
    command(
      'print',
      'Print the systemd unit; changes nothing',
      async () => (await import('./local/service/service.ts')).printUnit,
    ),
    command(
      'install',
      'Write the systemd unit, and say what to do next',
      async () => (await import('./local/service/service.ts')).installUnit,
    ),
    command(
      'uninstall',
      'Remove the systemd unit; the state stays',
      async () => (await import('./local/service/service.ts')).uninstallUnit,
    ),
  ]),
  group('certificate', 'Make a certificate for listen.tls', [
    command(
      'make',
      'Make a certificate for these hosts, and say how to trust it',
      async () => (await import('./local/certificate/certificate.ts')).makeCertificateCommand,
    ),
  ]),
  group('config', 'Check and show the configuration', [
    command(
      'check',
      'List what is wrong with the configuration, one line each',
      async () => (await import('./local/config.ts')).checkConfig,
    ),
    command(
      'show',
      'Show the effective configuration, with secrets masked',
      async () => (await import('./local/config.ts')).showConfig,
    ),
  ]),
  group('completion', 'Let the shell complete commands', [
    command('bash', 'Print the script for bash', async () =>
      (await import('./local/completion.ts')).scriptCommand('bash'),
    ),
    command('zsh', 'Print the script for zsh', async () =>
      (await import('./local/completion.ts')).scriptCommand('zsh'),
    ),
    command('fish', 'Print the script for fish', async () =>
      (await import('./local/completion.ts')).scriptCommand('fish'),
    ),
    command('next [words..]', 'List what may come next on a command line, for those scripts', async () =>
      (await import('./local/completion.ts')).nextCommand(commands),
    ),
  ]),
  command('man', 'Print the manual page', async () =>
    (await import('./local/manual.ts')).manualCommand(commands),
  ),
  command('help [command..]', 'Show the help of a command', async () =>
    (await import('./local/help.ts')).helpCommand(commands),
  ),
  command(
    'version',
    'Show the version, and what it runs on',
    async () => (await import('./local/version.ts')).versionCommand,
  ),
];
