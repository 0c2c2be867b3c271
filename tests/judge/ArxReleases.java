// Releases by ARX, and its word on releases of anybody's.
// java -cp ARX ArxReleases.java JOBS: a line of JOBS is tab-separated.
//   make TABLE.csv OUT.csv K L T SENSITIVE QI=HIERARCHY.csv ...  writes a release (L or T may be 0); prints the smallest class
//   holds TABLE.csv K L T SENSITIVE QI ...                       prints whether the table as it is has it: true or false

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.TreeSet;
import org.deidentifier.arx.*;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.criteria.*;
import org.deidentifier.arx.metric.Metric;

public class ArxReleases {
    private static ARXConfiguration asked(String k, String l, String t, String sensitive) {
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.addPrivacyModel(new KAnonymity(Integer.parseInt(k)));
        if (Integer.parseInt(l) > 0) configuration.addPrivacyModel(new DistinctLDiversity(sensitive, Integer.parseInt(l)));
        if (Double.parseDouble(t) > 0) configuration.addPrivacyModel(new EqualDistanceTCloseness(sensitive, Double.parseDouble(t)));
        return configuration;
    }

    private static Data read(String table, String sensitive, boolean isSensitive) throws Exception {
        Data data = Data.create(table, StandardCharsets.UTF_8, ',');
        for (int column = 0; column < data.getHandle().getNumColumns(); column++) {
            data.getDefinition().setAttributeType(data.getHandle().getAttributeName(column), AttributeType.INSENSITIVE_ATTRIBUTE);
        }
        if (isSensitive) data.getDefinition().setAttributeType(sensitive, AttributeType.SENSITIVE_ATTRIBUTE);
        return data;
    }

    private static String make(String[] job) throws Exception {
        boolean isSensitive = Double.parseDouble(job[4]) + Double.parseDouble(job[5]) > 0;
        Data data = read(job[1], job[6], isSensitive);
        for (String each : Arrays.copyOfRange(job, 7, job.length)) {
            String[] qi = each.split("=", 2);
            data.getDefinition().setAttributeType(qi[0], Hierarchy.create(qi[1], StandardCharsets.UTF_8, ';'));
        }
        ARXConfiguration configuration = asked(job[3], job[4], job[5], job[6]);
        configuration.setSuppressionLimit(0.5d);
        configuration.setQualityModel(Metric.createLossMetric(0.5d));
        ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
        if (!result.isResultAvailable()) return "none";
        DataHandle output = result.getOutput();
        output.save(job[2], ',');
        return "" + output.getStatistics().getEquivalenceClassStatistics().getMinimalEquivalenceClassSize();
    }

    private static String holds(String[] job) throws Exception {
        boolean isSensitive = Double.parseDouble(job[3]) + Double.parseDouble(job[4]) > 0;
        Data data = read(job[1], job[5], isSensitive);
        DataHandle handle = data.getHandle();
        for (String qi : Arrays.copyOfRange(job, 6, job.length)) {
            Hierarchy.DefaultHierarchy same = Hierarchy.create();
            for (String value : new TreeSet<>(Arrays.asList(handle.getDistinctValues(handle.getColumnIndexOf(qi))))) same.add(value);
            data.getDefinition().setAttributeType(qi, same);
        }
        ARXConfiguration configuration = asked(job[2], job[3], job[4], job[5]);
        configuration.setSuppressionLimit(0d);
        ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
        return "" + result.isResultAvailable();
    }

    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] job = line.split("\t");
            System.out.println(job[0].equals("make") ? make(job) : holds(job));
        }
    }
}
