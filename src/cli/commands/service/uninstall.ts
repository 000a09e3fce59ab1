import { rmSync } from 'node:fs';
import { defineCommand } from '../../command.ts';
import {
  changeUnit,
  checkSystem,
  isEnabled,
  platformOf,
  type ServiceArgs,
  serviceOptions,
  servicePath,
  unitError,
} from './service.ts';
import { isUnchanged } from './systemd-unit.ts';

/** Stops nothing. */
export const command = defineCommand({
  command: 'uninstall',
  describe: 'Remove the file of the service; the state stays',
  builder: serviceOptions,
  examples: [['sudo latchkey service uninstall', 'once it is disabled']],
  handler: async (args, output) => {
    checkSystem(args);
    const path = servicePath(args);
    changeUnit(path, (before) => {
      if (before === null) throw unitError(path, 'does not exist.');
      if (!isUnchanged(before)) throw unitError(path, 'was edited: remove it yourself. Nothing was changed.');
      if (isEnabled(args, path))
        throw unitError(path, `is enabled. First: ${systemctl(args)} disable --now latchkey`);
      rmSync(path);
    });
    return await output.result({ path }, [`Removed ${path}. Next:`, ...stepsAfter(args)].join('\n  '));
  },
});

function systemctl({ user }: ServiceArgs): string {
  return user ? 'systemctl --user' : 'systemctl';
}

function stepsAfter(args: ServiceArgs): readonly string[] {
  const platform = platformOf(args);
  if (platform === 'darwin') return [`launchctl bootout ${args.user ? 'gui/$(id -u)' : 'system'}/latchkey`];
  if (platform === 'linux') return [`${systemctl(args)} daemon-reload`];
  // In Windows PowerShell, sc is another command.
  if (!args.user) return ['sc.exe stop latchkey', 'sc.exe delete latchkey'];
  return ['latchkey stop', 'schtasks /delete /tn Latchkey /f'];
}
