import type { z } from 'zod';
import { type Configuration, settings } from '../config/configuration.ts';
import type { Tree } from '../config/file/tree.ts';
import { keysOf, metaOf } from '../config/schema.ts';
import type { SettingMeta } from '../config/types.ts';

type Reload = NonNullable<SettingMeta['reload']>;

/**
 * The configuration of a running process after a reload: settings marked `applies` have the new values, all others
 * keep theirs until a restart. The role stays as well.
 */
export function takenOver(running: Configuration, wanted: Configuration): Configuration {
  const { role, upstream, products } = running;
  const ofThisRole = wanted.role === role ? wanted : { ...wanted, upstream, products };
  const values = takePart(settings, 'applies', { running, wanted: ofThisRole });
  return { ...(values as Configuration), role };
}

function takePart(
  type: z.ZodType,
  inherited: Reload,
  { running, wanted }: { running: unknown; wanted: unknown },
): unknown {
  const { reload = inherited } = metaOf(type);
  const keys = keysOf(type);
  if (keys === null || running === null || wanted === null) return reload === 'applies' ? wanted : running;
  return Object.fromEntries(
    keys.map(({ name, type: each }) => {
      const values = { running: (running as Tree)[name], wanted: (wanted as Tree)[name] };
      return [name, takePart(each, reload, values)];
    }),
  );
}
