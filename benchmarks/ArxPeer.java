// Anonymizes a table with ARX: local recoding, as its own examples 54 and 57 do it.
// java -cp ARX ArxPeer.java TABLE.csv OUT.csv K QI=HIERARCHY.csv ... Prints seconds of CPU, start of the machine excluded.

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.deidentifier.arx.*;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

public class ArxPeer {
    private static double cpuSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    public static void main(String[] arguments) throws Exception {
        double began = cpuSeconds();
        Data data = Data.create(arguments[0], StandardCharsets.UTF_8, ',');
        for (int column = 0; column < data.getHandle().getNumColumns(); column++) {
            data.getDefinition().setAttributeType(data.getHandle().getAttributeName(column), AttributeType.INSENSITIVE_ATTRIBUTE);
        }
        for (int i = 3; i < arguments.length; i++) {
            String[] qi = arguments[i].split("=", 2);
            data.getDefinition().setAttributeType(qi[0], Hierarchy.create(qi[1], StandardCharsets.UTF_8, ';'));
        }
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.addPrivacyModel(new KAnonymity(Integer.parseInt(arguments[2])));
        configuration.setSuppressionLimit(0.99d);
        configuration.setHeuristicSearchThreshold(1_000_000); // more combinations than that are refused
        configuration.setQualityModel(Metric.createLossMetric(0d));
        ARXResult result = new ARXAnonymizer().anonymize(data, configuration);
        DataHandle output = result.getOutput();
        result.optimizeIterativeFast(output, 0.01d);
        output.save(arguments[1], ',');
        System.out.println(cpuSeconds() - began);
    }
}
