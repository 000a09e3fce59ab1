import { saveAnswer } from '../client/save.ts';
import { type Command, defineCommand, operand } from '../command.ts';

/** `backup`: never overwrites a file, and removes an incomplete one. */
export const backupCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('file', operand('New file', 'file'))
      .example('latchkey backup latchkey-2026-02-22.db', 'restore it with: latchkey restore'),
  (args, output) => saveAnswer(args.file, { path: '/admin/v1/backup' }, args, output),
);
