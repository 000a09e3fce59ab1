import { defineCommand } from '../../command.ts';
import { planUnit, serviceOptions, unitPath, withLocalFile } from './service.ts';
import { formatUnit } from './systemd-unit.ts';

export const command = defineCommand({
  command: 'print',
  describe: 'Print the systemd unit; changes nothing',
  builder: serviceOptions,
  examples: [['latchkey service print', 'to read it, or to put it elsewhere']],
  handler: async (options, output) => {
    const args = withLocalFile(options);
    const unit = formatUnit(planUnit(args));
    return await output.result({ path: unitPath(args), unit }, unit.trimEnd());
  },
});
