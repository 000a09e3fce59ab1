import { type ConfigurationResult, loadConfiguration } from '../../config/load.ts';
import { defineCommand, textOption } from '../command.ts';
import { formatSource, configurationError, toLoadOptions } from '../configuration.ts';
import { formatPath } from '../hint.ts';

/** The options override file and environment, also after a reload. */
export const command = defineCommand({
  command: 'serve',
  describe: 'Run the daemon',
  builder: {
    listen: textOption('TCP address, or false'),
    socket: textOption('Path of the Unix socket, or false', 'file'),
    'upstream-url': textOption('Base URL of the store: runs as an agent'),
    'log-level': textOption('trace, debug, info, warn, error …'),
    'log-format': textOption('json or pretty'),
  },
  examples: [
    ['latchkey serve', 'an authority on 127.0.0.1:8787'],
    ['latchkey serve --config agent.yaml', 'an agent, if the file has an upstream'],
  ],
  handler: async (args) => {
    const options = toLoadOptions(args, {
      listen: { tcp: toFalse(args.listen), socket: toFalse(args.socket) },
      upstream: args.upstreamUrl === undefined ? undefined : { base_url: args.upstreamUrl },
      log: { level: args.logLevel, format: args.logFormat },
    });
    const loaded = loadConfiguration(options);
    if (!loaded.ok) throw configurationError(loaded.errors);
    const { serve } = await import('../../daemon/serve.ts');
    return serve(loaded, async () => rejectOtherFile(loaded.file, loadConfiguration(options)));
  },
});

/** A reload must not read another file because the first file is gone or no longer trusted. */
function rejectOtherFile(file: string | null, again: ConfigurationResult): ConfigurationResult {
  if (!again.ok || file === null || again.file === file) return again;
  const text = `is ${formatSource(again)} now, and was ${formatPath(file)}: restart to change it`;
  return { ok: false, errors: [{ key: 'file', text, origin: 'default' }] };
}

/** `--listen false` turns the listener off, as `false` does in the file. */
function toFalse(text: string | undefined): string | false | undefined {
  return text === 'false' ? false : text;
}
