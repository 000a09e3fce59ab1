import { defineCommand } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { planUnit, serviceOptions, unitPath, withLocalFile } from './service.ts';
import { formatUnit } from './systemd-unit.ts';

export const command = defineCommand({
  command: 'print',
  describe: 'Print the systemd unit; changes nothing',
  builder: serviceOptions,
  examples: [['latchkey service print', 'to read it, or to put it elsewhere']],
  handler: async (given, output) => {
    const args = withLocalFile(given);
    const unit = formatUnit(planUnit(args));
    if (args.json) output.printJson({ path: unitPath(args), unit });
    else output.print(unit.trimEnd());
    return exitCode.done;
  },
});
