import type { Configuration } from '../config/configuration.ts';
import { type Description, nameOf, type Reload } from '../config/description.ts';
import { root } from '../config/settings/root.ts';
import type { Tree } from '../config/file/tree.ts';

/**
 * What a running process makes of another configuration: the settings whose descriptions say that they
 * apply at SIGHUP are taken over, the others stay as they are until a restart. So does its role.
 */
export function takenOver(running: Configuration, wanted: Configuration): Configuration {
  const { role, upstream, products } = running;
  const ofThisRole = wanted.role === role ? wanted : { ...wanted, upstream, products };
  const values = takePart(root, 'applies', { running, wanted: ofThisRole });
  return { ...(values as Configuration), role };
}

function takePart(
  description: Description,
  inherited: Reload,
  { running, wanted }: { running: unknown; wanted: unknown },
): unknown {
  const reload = description.reload ?? inherited;
  if (description.kind !== 'section' || running === null || wanted === null)
    return reload === 'applies' ? wanted : running;
  return Object.fromEntries(
    Object.entries(description.keys).map(([key, each]) => {
      const name = nameOf(key, each);
      const values = { running: (running as Tree)[name], wanted: (wanted as Tree)[name] };
      return [name, takePart(each, reload, values)];
    }),
  );
}
