import { locateDaemon } from '../../config/load.ts';
import { counted } from '../../domain/text.ts';
import { saveResponse } from '../client/save.ts';
import { CommandError, defineCommand, type GlobalOptions, positional } from '../command.ts';
import { configurationError, toLoadOptions } from '../configuration.ts';
import { hintFor, quoteForShell, startCommand } from '../hint.ts';

interface Unsent {
  readonly operations: Readonly<Record<string, number>>;
  /** Only a holder has some. */
  readonly uses: number;
}

export const backup = defineCommand({
  command: 'backup <file>',
  describe: 'Copy the state of the running daemon into a new file',
  builder: { file: positional('New file', 'file') },
  examples: [['latchkey backup latchkey-2026-02-22.db', 'restore it with: latchkey restore']],
  handler: async (args, output) => await saveResponse(args.file, { path: '/admin/v1/backup' }, args, output),
});

export const restore = defineCommand({
  command: 'restore <file>',
  describe: 'Restore a backup, while no daemon runs',
  builder: {
    file: positional('File made by latchkey backup', 'file'),
    'drop-unsent': {
      type: 'boolean',
      default: false,
      describe: 'Restore even if the present database has changes or uses that were never sent',
    },
  },
  examples: [
    [
      'latchkey restore latchkey-2026-02-22.db',
      'as a new instance, which checks the upstream before it sends changes',
    ],
  ],
  handler: async (args, output) => {
    const located = locateDaemon(toLoadOptions(args));
    if (!located.ok) throw configurationError(located.errors);
    const { stateDir, engine, hasUpstream } = located.location;
    if (engine !== null) {
      throw new CommandError([
        `latchkey: the records are in ${engine.place}, not in ${stateDir}: ${engine.restoring(args.file, hintFor(args))}`,
        'Nothing was changed.',
      ]);
    }
    const { restoreBackup } = await import('../../daemon/store/restore.ts');
    const restored = await restoreBackup(args.file, stateDir, (unsent) =>
      confirmLoss(args, stateDir, unsent),
    );
    if (!restored.ok) throw new CommandError([`latchkey: ${restored.reason}`, 'Nothing was changed.']);
    const { instance, role, unfinished, kept, unsent } = restored;
    const lines = [
      `${args.file} is restored into ${stateDir}, as a new instance: ${instance}`,
      ...(kept.length === 0
        ? []
        : [`The previous database is kept as ${kept.join(' and ')}`, ...formatLoss(unsent)]),
      unfinished === 0
        ? 'The backup has no unfinished changes.'
        : `The backup has ${counted(unfinished, 'unfinished change')}: each is read back from the upstream before any is sent.`,
      role === 'agent' && !hasUpstream
        ? `Start it with its upstream and products in the configuration: ${hintFor({ ...args, config: args.config ?? 'FILE' })('serve')}`
        : `Start it: ${await startCommand(args, stateDir)}`,
    ];
    const lost = unsent === null ? null : { ...unsent.operations, uses: unsent.uses };
    return await output.result(
      { state_dir: stateDir, instance, unfinished, kept, unsent: lost },
      lines.join('\n'),
    );
  },
});

/** For example `3 changes (2 pending, 1 uncertain)`; null if there are none. */
function formatUnsent({ operations, uses }: Unsent): string | null {
  if (uses > 0) return counted(uses, 'use');
  const states = Object.entries(operations).filter(([, count]) => count > 0);
  if (states.length === 0) return null;
  const total = states.reduce((sum, [, count]) => sum + count, 0);
  return `${counted(total, 'change')} (${states.map(([state, count]) => `${count} ${state}`).join(', ')})`;
}

/** Asks whether changes may be given up that only the present database has. Throws if they may not. */
async function confirmLoss(
  args: GlobalOptions & { readonly file: string; readonly dropUnsent: boolean },
  stateDir: string,
  unsent: Unsent,
): Promise<void> {
  if (args.dropUnsent) return;
  const accepted =
    unsent.uses > 0 ? 'the issuer of leases has not confirmed' : 'the upstream has not accepted';
  const what = `the database in ${stateDir} has ${formatUnsent(unsent)} that the backup does not have and ${accepted}`;
  if (process.stdin.isTTY && process.stderr.isTTY) {
    const { confirm } = await import('@clack/prompts');
    const message = `${what.replace(/^t/, 'T')}. They will never be sent. Restore the backup?`;
    // Standard output is for the result.
    const answer = await confirm({ output: process.stderr, message, initialValue: false });
    if (answer === true) return;
    throw new CommandError(['latchkey: cancelled', 'Nothing was changed.']);
  }
  throw new CommandError([
    `latchkey: ${what}: after a restore they would never be sent`,
    `To send them first: ${await startCommand(args, stateDir)}`,
    `To give them up: ${hintFor(args)(`restore ${quoteForShell(args.file)} --drop-unsent`)}`,
    'Nothing was changed.',
  ]);
}

function formatLoss(unsent: Unsent | null): readonly string[] {
  if (unsent === null) return ['It could not be read: changes in it that were not sent yet are never sent.'];
  const lost = formatUnsent(unsent);
  if (lost === null) return [];
  return unsent.uses > 0
    ? [`${lost} in it were not confirmed by the issuer of leases, and will not be sent.`]
    : [`${lost} in it were not sent, and will not be.`];
}
