import { rmSync } from 'node:fs';
import { defineCommand } from '../../command.ts';
import { changeUnit, isEnabled, serviceOptions, systemctl, unitError, unitPath } from './service.ts';
import { isUnchanged } from './systemd-unit.ts';

/** Stops nothing. */
export const command = defineCommand({
  command: 'uninstall',
  describe: 'Remove the systemd unit; the state stays',
  builder: serviceOptions,
  examples: [['sudo latchkey service uninstall', 'once it is disabled']],
  handler: async (args, output) => {
    const path = unitPath(args);
    changeUnit(path, (before) => {
      if (before === null) throw unitError(path, 'does not exist.');
      if (!isUnchanged(before)) throw unitError(path, 'was edited: remove it yourself. Nothing was changed.');
      if (isEnabled(args, path))
        throw unitError(path, `is enabled. First: ${systemctl(args)} disable --now latchkey`);
      rmSync(path);
    });
    return await output.result({ path }, `Removed ${path}. Next:\n  ${systemctl(args)} daemon-reload`);
  },
});
