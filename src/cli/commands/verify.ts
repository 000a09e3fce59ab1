import { ask } from '../client/ask.ts';
import { type Command, defineCommand, operand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatLicense } from '../text/license.ts';
import { license } from '../client/wire.ts';

/** `verify`: 0 when the key is enabled, 1 when it is disabled or unknown. */
export const verifyCommand: Command = defineCommand(
  (yargs) =>
    yargs
      .positional('key', operand('License key'))
      .example('$0 verify ABCDE-FGHJK-LMNPQ-RSTUV', 'exits 0 when valid, 1 when disabled or unknown')
      .example('$0 verify --json -- "$KEY"', 'for scripts: after -- nothing is an option'),
  (args, output) =>
    ask(
      args,
      output,
      { path: '/api/v2/license/verify', query: { license_key: args.key } },
      {
        schema: license,
        show: formatLicense,
        judge: ({ enabled }) => (enabled ? exitCode.done : exitCode.failed),
      },
    ),
);
