import { ask } from '../client/ask.ts';
import { type Command, defineCommand, operand } from '../command.ts';
import { formatLicense } from '../text/license.ts';
import { license } from '../client/wire.ts';

/** `use`. */
export const useCommand: Command = change('usage');

/** `unuse`. */
export const unuseCommand: Command = change('decrease');

/** `enable`. */
export const enableCommand: Command = change('enable');

/** `disable`. */
export const disableCommand: Command = change('disable');

/** Each change of a license is one endpoint of the specification (4.4). */
function change(endpoint: string): Command {
  return defineCommand(
    (yargs) => yargs.positional('key', operand('License key')),
    (args, output) =>
      ask(
        args,
        output,
        { method: 'PUT', path: `/api/v2/license/${endpoint}`, form: { license_key: args.key } },
        { schema: license, show: formatLicense },
      ),
  );
}
