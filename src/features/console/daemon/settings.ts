import { formatKey } from '../../../config/errors.ts';
import { leavesOf } from '../../../config/file/tree.ts';
import { effective } from '../../../config/configuration.ts';
import type { ConfigObject } from '../wire/console.ts';
import type { LiveConfiguration } from '../../../daemon/live-configuration.ts';

/** The values in effect, as `config show` writes them, and where each comes from. */
export function settingsOf({ configuration, source }: LiveConfiguration): ConfigObject {
  const given = { source: 'option', origin: null } as const;
  return {
    file: source?.file ?? null,
    settings: leavesOf(effective(configuration)).map(([path, value]) => ({
      key: formatKey(path),
      value: String(value),
      ...(source?.sourceOf(path) ?? given),
    })),
  };
}
