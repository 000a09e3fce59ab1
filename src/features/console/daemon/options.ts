import { findConfigurationFiles, homeDirectory, stateDirOf } from '../../../config/defaults.ts';
import type { LiveConfiguration } from '../../../daemon/live-configuration.ts';

/** The options that a command of any user of this machine needs to reach this process. */
export function optionsFor({
  configuration: { stateDir },
  source,
}: Pick<LiveConfiguration, 'configuration' | 'source'>): readonly string[] {
  const machine = { environment: {}, home: homeDirectory() ?? '/', platform: process.platform };
  const file = source?.file ?? null;
  if (file !== null && source?.sourceOf(['state_dir']).source === 'file')
    return findConfigurationFiles(machine).includes(file) ? [] : ['--config', file];
  return stateDir === stateDirOf(machine, {}) ? [] : ['--state-dir', stateDir];
}
