import { type ConfigurationResult, loadConfiguration } from '../../config/load.ts';
import { type Command, defineCommand, textOption } from '../command.ts';
import { formatSource, reportFaults, toLoadOptions } from '../configuration.ts';
import { formatPath } from '../hint.ts';

/** `serve`: runs the daemon in this process; flags win over file and environment, also after a reload. */
export const serveCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .options({
        listen: textOption('TCP address, or false'),
        socket: textOption('Path of the Unix socket, or false', 'file'),
        'upstream-url': textOption('Base URL of the store: runs as an agent'),
        'log-level': textOption('trace, debug, info, warn, error …'),
        'log-format': textOption('json or pretty'),
      })
      .example('latchkey serve', 'an authority on 127.0.0.1:8787')
      .example('latchkey serve --config agent.yaml', 'an agent, if the file has an upstream'),
  async (args, output) => {
    const options = toLoadOptions(args, {
      listen: { tcp: toSwitch(args.listen), socket: toSwitch(args.socket) },
      upstream: args.upstreamUrl === undefined ? undefined : { base_url: args.upstreamUrl },
      log: { level: args.logLevel, format: args.logFormat },
    });
    const loaded = loadConfiguration(options);
    if (!loaded.ok) return reportFaults(loaded.faults, output);
    const { serve } = await import('../../daemon/serve.ts');
    return serve(loaded, async () => refuseOther(loaded.file, loadConfiguration(options)));
  },
);

/** A reload must not slip into another configuration because the file of the start is gone or no longer safe. */
function refuseOther(file: string | null, again: ConfigurationResult): ConfigurationResult {
  if (!again.ok || file === null || again.file === file) return again;
  const text = `is ${formatSource(again)} now, and was ${formatPath(file)}: restart to change it`;
  return { ok: false, faults: [{ key: 'file', text, origin: 'default' }] };
}

/** `--listen false` switches the listener off, as `false` does in the file. */
function toSwitch(text: string | undefined): string | false | undefined {
  return text === 'false' ? false : text;
}
