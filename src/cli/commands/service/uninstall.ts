import { rmSync } from 'node:fs';
import { defineCommand } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { changeUnit, isEnabled, refuse, serviceOptions, systemctl, unitPath } from './service.ts';
import { isUnchanged } from './systemd-unit.ts';

/** Stops nothing. */
export const command = defineCommand({
  command: 'uninstall',
  describe: 'Remove the systemd unit; the state stays',
  builder: serviceOptions,
  examples: [['sudo latchkey service uninstall', 'once it is disabled']],
  handler: async (args, output) => {
    const path = unitPath(args);
    return changeUnit(path, output, (before) => {
      if (before === null) return refuse(output, path, 'does not exist.');
      if (!isUnchanged(before)) {
        return refuse(output, path, 'was edited: remove it yourself. Nothing was changed.');
      }
      if (isEnabled(args, path)) {
        return refuse(output, path, `is enabled. First: ${systemctl(args)} disable --now latchkey`);
      }
      rmSync(path);
      if (args.json) output.printJson({ path });
      else output.print(`Removed ${path}. Next:\n  ${systemctl(args)} daemon-reload`);
      return exitCode.done;
    });
  },
});
