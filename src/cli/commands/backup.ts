import { saveResponse } from '../client/save.ts';
import { defineCommand, positional } from '../command.ts';

export const command = defineCommand({
  command: 'backup <file>',
  describe: 'Copy the state of the running daemon into a new file',
  builder: { file: positional('New file', 'file') },
  examples: [['latchkey backup latchkey-2026-02-22.db', 'restore it with: latchkey restore']],
  handler: async (args, output) => await saveResponse(args.file, { path: '/admin/v1/backup' }, args, output),
});
