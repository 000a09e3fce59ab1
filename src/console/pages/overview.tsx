import { Heading } from '../parts/page.tsx';
import type { PageProps } from '../page-props.ts';

export function Overview({ overview }: PageProps) {
  return <Heading title={`Overview of this ${overview.data?.role ?? 'daemon'}`} />;
}
