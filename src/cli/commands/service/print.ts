import { defineCommand } from '../../command.ts';
import { planService, serviceOptions, withLocalFile } from './service.ts';

export const command = defineCommand({
  command: 'print',
  describe: 'Print the file of the service; changes nothing',
  builder: serviceOptions,
  examples: [
    ['latchkey service print', 'to read it, or to put it elsewhere'],
    ['latchkey service print --platform win32', 'for a Windows machine that you prepare'],
  ],
  epilogue:
    'The file is a systemd unit on Linux, a launchd job on macOS, and on Windows a service for WinSW or, with --user, a task that starts at logon.',
  handler: async (options, output) => {
    const { path, text } = planService(withLocalFile(options));
    return await output.result({ path, unit: text }, text.trimEnd());
  },
});
